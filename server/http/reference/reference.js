// Adds a filter, tabs, copy buttons and a mark for the current section to the reference page. Without this script the
// page shows the same content, one part below the other.

document.documentElement.classList.add('js');
document.addEventListener('DOMContentLoaded', () => {
  const nav = document.getElementById('navigation');
  addMenu(nav);
  addFilter(nav);
  followReading(nav);
  for (const group of document.querySelectorAll('.tabs')) makeTabs(group);
  for (const figure of document.querySelectorAll('.code:not(.tabs > *)')) {
    figure.querySelector('figcaption').append(copyButton(() => figure, figure.dataset.label));
  }
  goToAddress();
});
addEventListener('hashchange', goToAddress);

/**
 * Scrolls to the element that the address names. The browser alone does not get it right, because elements move while
 * tabs are made.
 */
function goToAddress() {
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function element(name, properties, attributes = {}) {
  const made = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Adds the button that shows and hides the navigation on a narrow screen. */
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
    for (const group of nav.querySelectorAll('.group')) {
      group.hidden = group.querySelector('li:not([hidden])') === null;
    }
    none.hidden = nav.querySelector('.group:not([hidden])') !== null;
  });
  document.addEventListener('keydown', (event) => {
    const isTyping = /^(?:INPUT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
}

/** Marks the navigation entry of the section that is at the top of the window. */
function followReading(nav) {
  const links = new Map([...nav.querySelectorAll('a')].map((link) => [link.hash.slice(1), link]));
  const sections = [...document.querySelectorAll('[data-spy]')];
  const visible = new Set();
  let current;
  const mark = () => {
    const link = links.get(sections.findLast((one) => visible.has(one))?.id);
    if (link === current) return;
    current?.removeAttribute('aria-current');
    link?.setAttribute('aria-current', 'location');
    if (link !== undefined) keepInView(nav, link);
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

/**
 * One function for each group of languages, which shows a language in that group. All groups show the same language,
 * and the next visit begins with it.
 */
const languageGroups = [];
const LANGUAGE_KEY = 'headgate-language';
/** Undefined if the browser does not allow the page to store anything. The choice then applies to this visit. */
const storage = allowedStorage();
let tabCount = 0;

function makeTabs(group) {
  const figures = [...group.querySelectorAll('.code')];
  const { name } = group.dataset;
  const isOfLanguages = group.dataset.tabs === 'language';
  const list = element('div', {}, { role: 'tablist', 'aria-label': name });
  const shownFigure = () => figures.find((figure) => !figure.hidden);
  const show = (label) => {
    const shown = figures.find((figure) => figure.dataset.label === label) ?? figures[0];
    for (const [index, figure] of figures.entries()) {
      figure.hidden = figure !== shown;
      list.children[index].setAttribute('aria-selected', String(figure === shown));
      list.children[index].tabIndex = figure === shown ? 0 : -1;
    }
  };
  for (const figure of figures) {
    const id = `tab-${++tabCount}`;
    const { label } = figure.dataset;
    figure.id = `${id}-panel`;
    figure.setAttribute('role', 'tabpanel');
    figure.setAttribute('aria-labelledby', id);
    const tab = element(
      'button',
      { type: 'button', id, textContent: label },
      { role: 'tab', 'aria-controls': figure.id },
    );
    tab.addEventListener('click', () => (isOfLanguages ? chooseLanguage(label, tab) : show(label)));
    list.append(tab);
  }
  list.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    const at = figures.indexOf(shownFigure());
    const next = list.children[(at + step + figures.length) % figures.length];
    next.click();
    next.focus();
    event.preventDefault();
  });
  const head = element('div', { className: 'tablist' });
  head.append(element('span', { className: 'name', textContent: name }), list, copyButton(shownFigure, name));
  group.prepend(head);
  if (isOfLanguages) languageGroups.push(show);
  show(isOfLanguages ? storage?.getItem(LANGUAGE_KEY) : undefined);
}

/**
 * Shows a language in all groups and stores the choice. Scrolls so that the clicked tab stays at the same place on the
 * screen, because the groups above it change their heights.
 */
function chooseLanguage(label, tab) {
  const before = tab.getBoundingClientRect().top;
  for (const show of languageGroups) show(label);
  scrollBy(0, tab.getBoundingClientRect().top - before);
  storage?.setItem(LANGUAGE_KEY, label);
}

function allowedStorage() {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

const COPIED_SHOWN_MS = 1500;

/** Returns a button that copies the code of a figure. */
function copyButton(figureOf, what) {
  const button = element(
    'button',
    { type: 'button', className: 'copy', textContent: 'Copy' },
    { 'aria-label': `Copy: ${what}`, 'aria-live': 'polite' },
  );
  // Browsers allow access to the clipboard only for pages that were loaded over HTTPS or from the same machine. That is
  // always the case for this page.
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(figureOf().querySelector('pre').textContent).then(
      () => true,
      () => false,
    );
    button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, COPIED_SHOWN_MS);
  });
  return button;
}
