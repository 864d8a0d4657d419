import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const source = await readFile(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

/**
 * What a page does wrong for those who do not see, point or hear, each with where; empty when nothing. Of a second theme
 * only the contrasts can differ.
 */
export async function findBarriers(
  page: Page,
  what: 'everything' | 'contrast' = 'everything',
): Promise<readonly string[]> {
  // Evaluated by the browser itself: the policy of the page lets no other script in.
  await page.evaluate(source);
  const { violations } = await page.evaluate(
    (rules) => {
      const { axe } = window as unknown as { axe: { run(options: object): Promise<AxeResults> } };
      return axe.run(rules ? { runOnly: rules } : {});
    },
    what === 'contrast' ? ['color-contrast'] : undefined,
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ target, failureSummary }) => `${id}: ${help} at ${target.join(' ')} (${failureSummary})`,
    ),
  );
}
