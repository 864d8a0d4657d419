/** The parts of VitePress's search box that screen readers get wrong, each with its replacement. */
const fixes: readonly (readonly [string, string])[] = [
  // A dialog, not a button that contains the whole search.
  ['role="button"', 'role="dialog" aria-modal="true"'],
  [':aria-owns="results?.length ? \'localsearch-list\' : undefined"', ''],
  ['aria-expanded="true"', ''],
  ['aria-haspopup="listbox"', ''],
  // The option is the link itself, named by the text that it shows.
  [
    ':id="\'localsearch-item-\' + index"\n            :aria-selected="selectedIndex === index ? \'true\' : \'false\'"\n            role="option"',
    'role="presentation"',
  ],
  [
    ':aria-label="[...p.titles, p.title].join(\' > \')"',
    ':id="\'localsearch-item-\' + index" :aria-selected="selectedIndex === index ? \'true\' : \'false\'" role="option"',
  ],
  // The index is loaded with the first search.
  [
    'v-if="filterText && !results.length && enableNoResults"',
    'v-if="filterText && !searchIndex" class="no-results">Searching…</li>\n          <li v-if="filterText && !results.length && enableNoResults"',
  ],
  // A key that is drawn as an icon is an image with a name.
  ['<kbd :aria-label', '<kbd role="img" :aria-label'],
];

/** Corrects the roles in VitePress's search box. Fails if a new version of VitePress has other markup. */
export const accessibleSearch = {
  name: 'accessible-search',
  enforce: 'pre' as const,
  transform(code: string, id: string): string | undefined {
    if (!id.endsWith('/VPLocalSearchBox.vue')) return undefined;
    let fixed = code;
    for (const [from, to] of fixes) {
      if (!fixed.includes(from)) {
        throw new Error(
          `The search box of VitePress no longer contains ${from}. Check it with axe.`,
        );
      }
      fixed = fixed.replaceAll(from, to);
    }
    return fixed;
  },
};
