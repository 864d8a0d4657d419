import { join, resolve } from 'node:path';
import { defineConfig } from 'vitepress';
import { publicAddress } from '../../scripts/docs/address.ts';
import { accessibleSearch } from '../build/accessible-search.ts';
import { anchorOf } from '../build/anchor.ts';
import { showBraces } from '../build/braces.ts';
import { apiSidebar, guideGroups } from '../build/contents.ts';

const root = resolve(import.meta.dirname, '../..');
const address = publicAddress(root);
const pages = join(root, 'site/dist/pages');

export default defineConfig({
  title: 'Waymark',
  description: 'A TypeScript runtime for stateful agents: every turn saves a snapshot.',
  lang: 'en',
  srcDir: 'dist/pages',
  outDir: 'dist/html',
  cacheDir: 'dist/cache',
  cleanUrls: true,
  // Otherwise every page repeats the list of all pages.
  metaChunk: true,
  // The home page of the theme has no main landmark.
  transformHtml: (html) => html.replace('<div class="VPHome"', '<div role="main" class="VPHome"'),
  head: [['link', { rel: 'icon', href: '/icon.svg', type: 'image/svg+xml' }]],
  markdown: {
    // The anchors of the pages are those of the repository's own links.
    anchor: { slugify: anchorOf },
    config: showBraces,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  // The index of the search is one file, loaded with the first search.
  vite: { build: { chunkSizeWarningLimit: 5_000 }, plugins: [accessibleSearch] },
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/getting-started' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { text: 'Compared', link: '/compared' },
      { text: 'Performance', link: '/performance' },
      { text: 'Changelog', link: '/project/changelog' },
    ],
    sidebar: { ...apiSidebar(join(pages, 'api')), '/': guideGroups(root) },
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            // Guides before signatures, and both before pages about the project.
            boostDocument: (id: string) =>
              /^\/(api|project|semantics)/.test(id) ? (id.startsWith('/api') ? 0.25 : 0.05) : 1,
          },
        },
      },
    },
    ...(address !== undefined && { socialLinks: [{ icon: 'github', link: address }] }),
    footer: { message: 'MIT license' },
  },
});
