import { groups } from '../../src/cli/commands.ts';
import { optionName } from '../../src/cli/help.ts';

/** Every command of the command line as Markdown, from what its own help says. */
export function cliReference(): string {
  const sections = groups.flatMap(([title, commands]) => [
    `### ${title}`,
    ...commands.map(({ name, usage, summary, about, options, examples = [] }) =>
      [
        `#### waymark ${name}`,
        `${summary}. \`waymark ${[name, usage].filter(Boolean).join(' ')}\``,
        ...(about === undefined ? [] : about.split('\n\n').map(asProse)),
        [
          '| option | what it does |',
          '| --- | --- |',
          ...Object.entries(options).map(
            ([option, spec]) => `| \`${optionName(option, spec)}\` | ${asProse(spec.about)} |`,
          ),
        ].join('\n'),
        ...(examples.length === 0
          ? []
          : [`\`\`\`sh\n${examples.map((line) => `waymark ${line}`).join('\n')}\n\`\`\``]),
      ].join('\n\n'),
    ),
  ]);
  return sections.join('\n\n');
}

/** A help text as Markdown: commands and placeholders become code. Otherwise `<agent>` would be read as HTML. */
function asProse(text: string): string {
  return text
    .replaceAll('\n', ' ')
    .replace(/"(waymark [^"]*)"/g, '`$1`')
    .replace(/\w+:<\w+>/g, '`$&`');
}
