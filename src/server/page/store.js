// What stays in the browser: the conversation and the settings, in localStorage below "orthrus.".

/** What was saved under `name`, or `otherwise` where there is nothing usable. */
export function load(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`orthrus.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** False where the browser keeps nothing, or has no room for it. */
export function save(name, value) {
  try {
    localStorage.setItem(`orthrus.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
