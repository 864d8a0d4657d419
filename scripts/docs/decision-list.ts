import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The decisions in a folder as a list of links, by number. */
export function decisionList(folder: string): string {
  return readdirSync(folder)
    .filter((name) => /^\d{4}-.*\.md$/.test(name))
    .sort()
    .map((name) => {
      const [, title = name] =
        /^# (?:\d+[.:]? *)?(.*)$/m.exec(readFileSync(join(folder, name), 'utf8')) ?? [];
      return `- [${name.slice(0, 4)}](${name}) ${title}`;
    })
    .join('\n');
}
