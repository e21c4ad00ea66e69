// Small helpers around the DOM. Nothing on this page ever sets innerHTML: text is text.

/** An element with attributes (those named `on*` are listeners) and children. */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** A button that copies what `text()` returns and says so for a moment. */
export function copyButton(text, label) {
  const button = element('button', {type: 'button', class: 'small copy', 'aria-label': label}, 'Copy');
  button.addEventListener('click', async () => {
    const done = await copy(text());
    button.textContent = done ? 'Copied' : 'Not copied';
    say(done ? 'Copied' : 'The browser did not let the page copy');
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}

/** The clipboard API exists on secure origins only, and a server in the house is often plain http. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = element('textarea', {class: 'hidden', 'aria-hidden': 'true'});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    focused?.focus();
    return done;
  }
}

/** Has a screen reader say `text`. What was said long ago leaves the document. */
export function say(text) {
  const spoken = byId('spoken');
  spoken.append(element('div', {}, text));
  while (spoken.childElementCount > 8) spoken.firstElementChild.remove();
}
