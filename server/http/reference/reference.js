// What the reference page can do with a script: filter, tabs, copying, and showing where the reader is. Without it
// everything is there as well, one below the other.

document.documentElement.classList.add('js');
document.addEventListener('DOMContentLoaded', () => {
  const nav = document.getElementById('navigation');
  addMenu(nav);
  addFilter(nav);
  followReading(nav);
  for (const group of document.querySelectorAll('.tabs')) makeTabs(group);
  for (const figure of document.querySelectorAll('.code')) {
    if (figure.closest('.tabs') === null) {
      const pre = figure.querySelector('pre');
      figure.querySelector('figcaption').append(copyButton(() => pre.textContent, figure.dataset.label));
    }
  }
  goToAddress();
});
addEventListener('hashchange', goToAddress);

/** Places shift while tabs are made, and a target may lie in something that is folded. */
function goToAddress() {
  const target = document.getElementById(nameInAddress());
  if (target === null) return;
  const folded = target.closest('details');
  if (folded !== null) folded.open = true;
  target.scrollIntoView({ behavior: 'instant' });
}

/** Anybody can write an address, and not every one can be decoded. */
function nameInAddress() {
  const name = location.hash.slice(1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function element(name, properties, attributes = {}) {
  const made = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** On a narrow screen the navigation is folded behind a button. */
function addMenu(nav) {
  const button = element(
    'button',
    { type: 'button', className: 'menu', textContent: 'Contents' },
    { 'aria-controls': nav.id, 'aria-expanded': 'false' },
  );
  const show = (isShown) => {
    nav.classList.toggle('shown', isShown);
    button.setAttribute('aria-expanded', String(isShown));
  };
  button.addEventListener('click', () => show(!nav.classList.contains('shown')));
  nav.addEventListener('click', ({ target }) => {
    if (target.closest('a') !== null) show(false);
  });
  document.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !nav.classList.contains('shown')) return;
    show(false);
    button.focus();
  });
  document.querySelector('.bar').append(button);
}

function addFilter(nav) {
  const input = element(
    'input',
    { type: 'search', placeholder: 'Filter: fields, codes, paths' },
    { 'aria-label': 'Filter the contents', spellcheck: 'false', autocomplete: 'off' },
  );
  const none = element('p', { textContent: 'Nothing matches.', hidden: true }, { role: 'status' });
  const box = element('div', { className: 'filter' });
  box.append(input, none);
  nav.prepend(box);

  const items = [...nav.querySelectorAll('li')];
  const findOf = (item) => item.querySelector(':scope > a').dataset.find;
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (item) => words.every((word) => findOf(item).includes(word));
    nav.classList.toggle('filtered', words.length > 0);
    for (const item of items) {
      const above = item.parentElement.closest('li');
      const isNear = above !== null && matches(above);
      item.hidden = !(matches(item) || isNear || [...item.querySelectorAll('li')].some(matches));
    }
    let isAnyShown = false;
    for (const group of nav.querySelectorAll('.group')) {
      group.hidden = group.querySelector('li:not([hidden])') === null;
      if (!group.hidden) isAnyShown = true;
    }
    none.hidden = isAnyShown;
  });
  document.addEventListener('keydown', (event) => {
    const isTyping = /^(?:INPUT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
}

/** Marks the entry of the section that the top of the window is in. */
function followReading(nav) {
  const links = new Map();
  for (const link of nav.querySelectorAll('a')) links.set(link.hash.slice(1), link);
  const sections = [...document.querySelectorAll('[data-spy]')];
  const visible = new Set();
  let current = null;
  const mark = () => {
    const section = sections.findLast((one) => visible.has(one));
    const link = section === undefined ? null : (links.get(section.id) ?? null);
    if (link === current) return;
    current?.removeAttribute('aria-current');
    link?.setAttribute('aria-current', 'location');
    for (const item of nav.querySelectorAll('li.open')) item.classList.remove('open');
    const outer = link?.closest('nav > .group > ul > li');
    outer?.classList.add('open');
    if (link !== null && link !== undefined) keepInView(nav, link);
    current = link;
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) visible.add(target);
        else visible.delete(target);
      }
      mark();
    },
    { rootMargin: '-15% 0px -84% 0px' },
  );
  for (const section of sections) observer.observe(section);
}

function keepInView(nav, link) {
  const room = nav.getBoundingClientRect();
  const place = link.getBoundingClientRect();
  if (place.top < room.top + 80 || place.bottom > room.bottom - 40) {
    nav.scrollTop += place.top - room.top - room.height / 3;
  }
}

/** All groups of one kind show the same choice, and the next visit begins with it. */
const chosen = new Map();
const groupsByKind = new Map();
let tabCount = 0;

function makeTabs(group) {
  const figures = [...group.querySelectorAll('.code')];
  const { tabs: kind, name } = group.dataset;
  const list = element('div', {}, { role: 'tablist', 'aria-label': name });
  const select = (at) => {
    for (const [index, figure] of figures.entries()) {
      const isSelected = index === at;
      figure.hidden = !isSelected;
      list.children[index].setAttribute('aria-selected', String(isSelected));
      list.children[index].tabIndex = isSelected ? 0 : -1;
    }
  };
  for (const [index, figure] of figures.entries()) {
    const id = `tab-${++tabCount}`;
    figure.id = `${id}-panel`;
    figure.setAttribute('role', 'tabpanel');
    figure.setAttribute('aria-labelledby', id);
    const tab = element(
      'button',
      { type: 'button', id, textContent: figure.dataset.label },
      { role: 'tab', 'aria-controls': figure.id },
    );
    tab.addEventListener('click', () => choose(kind, figure.dataset.label, () => select(index), tab));
    list.append(tab);
  }
  list.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    const at = figures.findIndex((figure) => !figure.hidden);
    const next = list.children[(at + step + figures.length) % figures.length];
    next.click();
    next.focus();
    event.preventDefault();
  });
  const shown = () => figures.find((figure) => !figure.hidden);
  const head = element('div', { className: 'tablist' });
  head.append(
    element('span', { className: 'name', textContent: name }),
    list,
    copyButton(() => shown().querySelector('pre').textContent, name),
  );
  group.prepend(head);
  if (kind !== '') {
    const ofKind = groupsByKind.get(kind) ?? [];
    groupsByKind.set(kind, ofKind);
    ofKind.push((label) => {
      const at = figures.findIndex((figure) => figure.dataset.label === label);
      if (at !== -1) select(at);
    });
  }
  const label = kind === '' ? undefined : (chosen.get(kind) ?? remembered(kind));
  select(
    Math.max(
      0,
      figures.findIndex((figure) => figure.dataset.label === label),
    ),
  );
}

/** What was clicked stays where it is on the screen, though the groups above it change their heights. */
function choose(kind, label, select, tab) {
  if (kind === '') {
    select();
    return;
  }
  const before = tab.getBoundingClientRect().top;
  chosen.set(kind, label);
  for (const show of groupsByKind.get(kind)) show(label);
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: 'instant' });
  try {
    localStorage.setItem(`headgate-${kind}`, label);
  } catch {
    // A browser that keeps nothing still shows the choice on this page.
  }
}

function remembered(kind) {
  try {
    return localStorage.getItem(`headgate-${kind}`);
  } catch {
    return null;
  }
}

const COPIED_SHOWN_MS = 1500;

function copyButton(textOf, what) {
  const button = element(
    'button',
    { type: 'button', className: 'copy', textContent: 'Copy' },
    { 'aria-label': `Copy: ${what}`, 'aria-live': 'polite' },
  );
  button.addEventListener('click', async () => {
    const isCopied = await copy(textOf());
    button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, COPIED_SHOWN_MS);
  });
  return button;
}

/** Browsers lend the clipboard to pages that came by HTTPS or from this machine only; elsewhere the old way. */
async function copy(text) {
  if (navigator.clipboard !== undefined) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const field = element('textarea', { value: text, className: 'copied' }, { 'aria-hidden': 'true' });
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  return isCopied;
}
