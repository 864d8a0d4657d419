import { join } from 'node:path';
import { badges, publicAddress } from './address.ts';
import { cliReference } from './cli-reference.ts';
import {
  comparisonSources,
  comparisonSummary,
  comparisonTable,
  readComparison,
} from './comparison.ts';
import { decisionList } from './decision-list.ts';
import { ergonomicsNotes, ergonomicsTable, readErgonomics } from './ergonomics.ts';
import {
  fieldsTable,
  membersOf,
  membersTable,
  optionsTable,
  propertiesOf,
} from './options-table.ts';
import { codeOf } from './regions.ts';
import { storeTable } from './store-table.ts';

/**
 * A page with everything in it that is taken from somewhere else:
 *
 * - a code block behind `<!-- code: path#region -->` (the path from docs/snippets, or from the root with a leading `/`),
 * - what stands between `<!-- options: path#Name -->` and `<!-- /options -->`: a table of an interface (`fields` for one whose
 *   values are handed out),
 * - the same with `members`: the methods of an interface, or the fields of a schema,
 * - between `<!-- badges -->` and `<!-- /badges -->`: the badges of the public repository, once package.json names it,
 * - between `<!-- cli -->` and `<!-- /cli -->`: the reference of the command line,
 * - between `<!-- decisions -->` and `<!-- /decisions -->`: the list of decisions,
 * - between `<!-- stores -->` and `<!-- /stores -->`: the table of stores and their capabilities,
 * - between `<!-- comparison -->` and `<!-- /comparison -->`: the short table of docs/comparison.json; with the name of a group, as
 *   `comparison: frameworks`, the whole one of its systems; with `comparison: sources` the sources of all cells,
 * - between `<!-- ergonomics -->` and `<!-- /ergonomics -->`: the sizes of the tasks in bench/ergonomics; with
 *   `ergonomics: notes` what they ask for, and what the libraries without them have instead.
 */
export function renderPage(text: string, root: string): string {
  const path = (name: string): string =>
    name.startsWith('/') ? join(root, name) : join(root, 'docs/snippets', name);
  return text
    .replace(
      /(<!-- code: (\S+?)(?:#(\S+))? -->\n```(\w+)\n)[\s\S]*?\n?```/g,
      (_, head: string, file: string, region: string | undefined) =>
        `${head}${codeOf(path(file), region)}\n\`\`\``,
    )
    .replace(
      /(<!-- (options|fields): (\S+?)#(\w+) -->\n)[\s\S]*?(<!-- \/\2 -->)/g,
      (_, head: string, kind: string, file: string, name: string, tail: string) => {
        const table = kind === 'options' ? optionsTable : fieldsTable;
        return `${head}\n${table(propertiesOf(join(root, file), name))}\n\n${tail}`;
      },
    )
    .replace(
      /(<!-- members: (\S+?)#(\w+) -->\n)[\s\S]*?(<!-- \/members -->)/g,
      (_, head: string, file: string, name: string, tail: string) =>
        `${head}\n${membersTable(membersOf(join(root, file), name))}\n\n${tail}`,
    )
    .replace(
      /(<!-- badges -->\n)[\s\S]*?(<!-- \/badges -->)/,
      (_, head: string, tail: string) => `${head}${badges(publicAddress(root))}${tail}`,
    )
    .replace(
      /(<!-- cli -->\n)[\s\S]*?(<!-- \/cli -->)/,
      (_, head: string, tail: string) => `${head}\n${cliReference()}\n\n${tail}`,
    )
    .replace(
      /(<!-- decisions -->\n)[\s\S]*?(<!-- \/decisions -->)/,
      (_, head: string, tail: string) =>
        `${head}\n${decisionList(join(root, 'docs/decisions'))}\n\n${tail}`,
    )
    .replace(
      /(<!-- stores -->\n)[\s\S]*?(<!-- \/stores -->)/,
      (_, head: string, tail: string) => `${head}\n${storeTable()}\n\n${tail}`,
    )
    .replace(
      /(<!-- comparison(?:: (\w+))? -->\n)[\s\S]*?(<!-- \/comparison -->)/g,
      (_, head: string, part: string | undefined, tail: string) => {
        const comparison = readComparison(root);
        const text =
          part === undefined
            ? comparisonSummary(comparison)
            : part === 'sources'
              ? comparisonSources(comparison)
              : comparisonTable(comparison, part);
        return `${head}\n${text}\n\n${tail}`;
      },
    )
    .replace(
      /(<!-- ergonomics(: notes)? -->\n)[\s\S]*?(<!-- \/ergonomics -->)/g,
      (_, head: string, notes: string | undefined, tail: string) => {
        const render = notes === undefined ? ergonomicsTable : ergonomicsNotes;
        return `${head}\n${render(readErgonomics(root))}\n\n${tail}`;
      },
    );
}
