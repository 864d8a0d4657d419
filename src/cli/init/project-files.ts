/** The files of a new project, by name. */
export function projectFiles({
  name,
  version,
}: {
  readonly name: string;
  readonly version: string;
}): readonly (readonly [name: string, text: string])[] {
  return [
    ['package.json', manifest(name, version)],
    ['agents.ts', agents],
    ['tsconfig.json', compilerOptions],
    ['README.md', readme(name)],
    ['.gitignore', 'node_modules/\n*.db\n*.db-shm\n*.db-wal\n'],
  ];
}

function manifest(name: string, version: string): string {
  const content = {
    name:
      name
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'my-agents',
    private: true,
    type: 'module',
    scripts: { start: 'waymark dev', chat: 'waymark chat hello' },
    dependencies: {
      '@hono/node-server': '^2',
      hono: '^4',
      waymark: `^${version}`,
      ws: '^8',
      zod: '^4',
    },
    engines: { node: '>=22.18' },
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

const agents = `import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';

// Plays a script. For a real one: npm install @ai-sdk/openai, then \`const model = openai('gpt-5')\`.
const model = scriptedModel({
  patterns: [[/my name is (\\w+)/i, ([, name]) => \`Nice to meet you, \${name}.\`]],
  otherwise: 'Hello! What is your name? Say "My name is ...".',
});

export const app = waymark({ model, store: sqliteStore('waymark.db') });

app.defineAgent({ name: 'hello', system: 'You are a friendly assistant.' });
`;

const compilerOptions = `${JSON.stringify(
  {
    compilerOptions: {
      target: 'es2024',
      module: 'nodenext',
      strict: true,
      noEmit: true,
      verbatimModuleSyntax: true,
      erasableSyntaxOnly: true,
      allowImportingTsExtensions: true,
      skipLibCheck: true,
    },
    include: ['*.ts', 'src'],
  },
  null,
  2,
)}
`;

function readme(name: string): string {
  return `# ${name}

An agent on Waymark: every turn leaves a snapshot to come back to.

\`\`\`sh
npm install
npm start            # the studio, in the browser; reloads when agents.ts changes
npm run chat         # the same agent in the terminal; /help lists what you can do
\`\`\`

The agents are in \`agents.ts\`, their sessions in \`waymark.db\`. Look at them with \`npx waymark sessions\`,
\`npx waymark snapshots <session>\` and \`npx waymark --help\`.
`;
}
