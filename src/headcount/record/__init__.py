"""Records: typed results with a signature, and their conversion to and from JSON. Imports no torch."""

from headcount.record.record import SCHEMA as SCHEMA
from headcount.record.record import Record as Record
from headcount.record.record import Signature as Signature
from headcount.record.record import displayed as displayed
from headcount.record.record import installed_versions as installed_versions
