// The settings dialog, the view switch, and what of them goes into a request.

import {byId} from './dom.js';
import {load, save} from './store.js';

const kNumbers = ['temperature', 'top_p', 'max_tokens', 'seed', 'draft_max'];
const kDefaults = {
  system: '', temperature: '', top_p: '', max_tokens: '', seed: '', draft_max: '', tint: true, dual: true,
};

export class Settings {
  /** `on_change()` is called after each change. */
  constructor(on_change) {
    this.dialog = byId('settings');
    this.form = this.dialog.querySelector('form');
    this.dual = byId('dual');
    this.plain = false;  // the model has no second view
    this.on_change = on_change;
    this.show({...kDefaults, ...load('settings', {})});
    // The key is for this tab: what stays in the browser for good is readable to whoever uses it next.
    this.form.elements.key.value = sessionStorage.getItem('orthrus.key') ?? '';
    this.form.addEventListener('input', () => this.changed());
    this.dual.addEventListener('change', () => this.changed());
    byId('open-settings').addEventListener('click', () => this.open());
    byId('reset-settings').addEventListener('click', () => {
      this.show({...kDefaults, dual: this.dual.checked});
      this.changed();
    });
  }

  open(name = 'system') {
    this.dialog.showModal();
    this.form.elements[name].focus();
  }

  get key() { return this.form.elements.key.value.trim(); }
  get tint() { return this.form.elements.tint.checked; }
  get system() { return this.form.elements.system.value; }

  /** The parameters of a request. The seed is always one, so that the other view can be asked for the same text. */
  parameters() {
    const parameters = {seed: crypto.getRandomValues(new Uint32Array(1))[0]};
    for (const name of kNumbers) {
      const field = this.form.elements[name];
      if (field.value !== '' && field.validity.valid) parameters[name] = field.valueAsNumber;
    }
    if (this.plain || !this.dual.checked) parameters.use_diffusion_mode = false;
    return parameters;
  }

  show(values) {
    const {elements} = this.form;
    for (const name of ['system', ...kNumbers]) elements[name].value = values[name];
    elements.tint.checked = values.tint;
    this.dual.checked = values.dual;
  }

  changed() {
    const {elements} = this.form;
    const values = {tint: this.tint, dual: this.dual.checked, system: this.system};
    for (const name of kNumbers) values[name] = elements[name].value;
    save('settings', values);
    try {
      sessionStorage.setItem('orthrus.key', this.key);
    } catch { /* the browser keeps nothing: the key lasts as long as the page */ }
    this.on_change();
  }
}
