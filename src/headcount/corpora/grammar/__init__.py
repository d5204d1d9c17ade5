"""The embedded corpus: English sentences with their dependency trees, and translations into three invented languages.

lexicon      English words, their classes, topics and senses
syntax       what a sentence means, before it has words in any language
generator    random sentences of a domain
english      the words of a sentence in English, with its tree
stems        invented words
languages/   one file per invented language
corpus       splits without overlap
"""
