// A head can be linked to: #encoder.1.3 opens its card, #encoder.1.3@MODEL that of another model than the first.
const headLink = (subject, place) => `#${subject.heads[place]}${subject === data.subjects[0] ? "" : `@${encodeURIComponent(subject.label)}`}`;

function linkedHead(address) {
  let [, head, label] = /^#([^@]+)(?:@(.*))?$/.exec(address) || [];
  try { label = label && decodeURIComponent(label); } catch { return null; }
  const subject = data.subjects.find((one) => (label === undefined || one.label === label) && one.heads.includes(head));
  return subject ? { subject, place: subject.heads.indexOf(head) } : null;
}

function followAddress() {
  const linked = linkedHead(location.hash);
  if (linked) openCard(linked.subject, linked.place, document.activeElement);
}

// Without a step in the history: walking from card to card would fill it.
function showAddress(hash) {
  try { history.replaceState(null, "", hash || location.pathname + location.search); } catch { /* a frame without an address */ }
}
