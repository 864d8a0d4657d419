/** The README of the packed package, rendered in a browser from the files of the tarball alone. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { marked } from 'marked';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium, type TestBrowser } from '../browser/support/chromium.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'waymark-readme-'));
const page = join(folder, 'package/index.html');
let browser: TestBrowser;

beforeAll(async () => {
  // Without the build: the README shows nothing of it.
  for (const path of ['package.json', 'docs', ...readdirSync(root).filter(isPage)]) {
    cpSync(join(root, path), join(folder, path), { recursive: true });
  }
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent'], { cwd: folder, stdio: 'ignore' });
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  execFileSync('tar', ['-xzf', tarball], { cwd: folder });
  const readme = readFileSync(join(folder, 'package/README.md'), 'utf8');
  writeFileSync(page, marked.parse(readme, { async: false }));
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

const isPage = (name: string): boolean => /^LICENSE$|\.(md|txt)$/.test(name);

test.each(['light', 'dark'] as const)(
  'all images of the README are in the tarball, %s',
  async (colorScheme) => {
    const { page: tab, context, errors } = await browser.newPage({ colorScheme });
    await tab.goto(pathToFileURL(page).href);
    const images = await tab.locator('img').evaluateAll((all) =>
      (all as HTMLImageElement[]).map(({ currentSrc, naturalWidth, alt }) => ({
        name: currentSrc.slice(currentSrc.lastIndexOf('/') + 1),
        isShown: naturalWidth > 0,
        hasText: alt !== '',
      })),
    );
    expect(images.filter(({ isShown, hasText }) => !isShown || !hasText)).toEqual([]);
    expect(images.map(({ name }) => name)).toContain(`studio-restore-${colorScheme}.png`);
    expect(errors).toEqual([]);
    await context.close();
  },
);
