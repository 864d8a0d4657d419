import { type App, agentTool, memoryStore, type Store, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { defineNewsroom } from '../../examples/newsroom.ts';
import { defineResearcher } from '../../examples/researcher.ts';
import { defineStory } from '../../examples/story.ts';
import { defineTripPlanner } from '../../examples/trip-planner.ts';
import { defineWriter } from '../../examples/writer.ts';

/** The example agents and a few that misbehave. */
export function createStudioApp({
  pauseMs = 250,
  store = memoryStore(),
}: {
  readonly pauseMs?: number;
  /** @default in memory */
  readonly store?: Store;
} = {}): App {
  const app = waymark({ store });
  defineTripPlanner(app);
  defineStory(app);
  const writer = defineWriter(app);
  const researcher = defineResearcher(app, { pauseMs });
  defineNewsroom(app, { writer, researcher });
  defineTrouble(app);
  return app;
}

/** What an agent may say and do that a page must survive. */
export const hostile = {
  html: '<img src=x onerror="window.broken=1"><script>window.broken=1</script> <b>bold?</b>',
  links: [
    '[click](javascript:window.broken=1) [fine](https://example.com) ![pic](https://example.com/x.png)',
    '[shout](JaVaScRiPt:window.broken=1) [page](data:text/html,<script>window.broken=1</script>) <javascript:window.broken=1>',
    '![drawn](data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22%20onload=%22window.broken=1%22/%3E)',
    '[a](https://example.com/"onmouseover="window.broken=1) `<script>window.broken=1</script>`',
    '```html\n<script>window.broken=1</script>\n```',
  ].join('\n\n'),
  svg: '<svg xmlns="http://www.w3.org/2000/svg" onload="window.broken=1"><script>window.broken=1</script></svg>',
  rtl: 'שלום עולם, وهذا نص عربي',
  scripts: [
    'שלום עולם',
    'وهذا نص عربي',
    `Z${'\u0301\u0323\u0336'.repeat(40)}algo`,
    '👩‍👩‍👧‍👦 🏳️‍🌈 𝒻𝒶𝓃𝒸𝓎',
    '縦書きではない長い日本語の文章がここに続きます。'.repeat(10),
    `https://example.com/${'long'.repeat(200)}`,
    'W'.repeat(1_500),
    `| a | b |\n| - | - |\n| ${'x'.repeat(400)} | y |`,
    `\`\`\`\n${'code '.repeat(300)}\n\`\`\``,
    `\`${'c'.repeat(300)}\``,
  ].join('\n\n'),
} as const;

function defineTrouble(app: App): void {
  const broken = app.defineTool(
    { name: 'broken', description: 'Always throws.', input: z.object({}) },
    () => {
      throw new Error('The disk is full.');
    },
  );
  const echo = app.defineTool(
    {
      name: 'echo',
      description: 'Answers with what it was asked.',
      input: z.object({ text: z.string() }),
    },
    ({ text }) => ({ [text]: text, list: [text] }),
  );
  const ask = app.defineInterrupt({
    name: 'ask',
    description: 'Asks how to go on.',
    input: z.object({ topic: z.string() }),
    output: z.object({
      colour: z.enum(['red', 'green']),
      amount: z.number().int(),
      sure: z.boolean(),
      note: z.string().optional(),
    }),
  });
  const model = scriptedModel(
    {
      patterns: [
        [/^html/, { text: `${hostile.html}\n\n${hostile.links}` }],
        [/^rtl/, { text: hostile.rtl }],
        [/^scripts/, { text: hostile.scripts }],
        [/^echo html/, { toolCalls: [{ name: 'echo', input: { text: hostile.html } }] }],
        [/^echo long/, { toolCalls: [{ name: 'echo', input: { text: 'W'.repeat(1_500) } }] }],
        [/^break/, { toolCalls: [{ name: 'broken', input: {} }] }],
        [/^ask html/, { toolCalls: [{ name: 'ask', input: { topic: hostile.html } }] }],
        [/^ask/, { toolCalls: [{ name: 'ask', input: { topic: 'paint' } }] }],
        [/^fail/, { chunks: ['half an answer '], error: new Error('The model broke.') }],
        [/^hang/, { chunks: ['half an answer '], hang: true }],
        [
          /^table/,
          {
            text: '# Title\n\n| a | b |\n| - | -: |\n| 1 | 2 |\n\n```ts\nconst x = 1;\n```\n\n- one\n  - two',
          },
        ],
      ],
      afterTools: (_, [result]) => `I got ${JSON.stringify(result)}.`,
      otherwise: 'I make trouble: html, rtl, break, ask, fail, hang, huge.',
    },
    { name: 'script' },
  );
  const trouble = app.defineAgent({
    name: 'trouble',
    description: 'Does what must not break the studio.',
    model,
    tools: [broken, echo, ask],
  });
  app.defineAgent({
    name: 'boss',
    description: 'Lets the troublemaker do it.',
    model: scriptedModel({
      patterns: [[/.+/, ([message]) => ({ toolCalls: [{ name: 'trouble', input: { message } }] })]],
      otherwise: 'Say something.',
    }),
    tools: [agentTool(trouble)],
  });
  app.defineCustomAgent({ name: 'thrower', description: 'Has a bug.' }, (session) =>
    session.run(() => {
      throw new TypeError('my bug is here');
    }),
  );
  app.defineCustomAgent(
    { name: 'filer', description: 'Makes files of every kind.' },
    async (session, { respond }) => {
      await session.run(async (input) => {
        const text = input.message?.content
          .map((part) => ('text' in part ? part.text : ''))
          .join('');
        const line = `${hostile.html} ${'x'.repeat(60)}\n`;
        const size = text === 'huge' ? 40_000 : 3;
        await respond.artifact({ name: 'page.html', parts: [{ text: line.repeat(size) }] });
        await respond.artifact({
          name: 'notes.md',
          parts: [{ text: `# Notes\n\n${hostile.html}\n\n${hostile.links}\n\n${text}` }],
        });
        await respond.artifact({ name: 'drawing.svg', parts: [{ text: hostile.svg }] });
        await respond.artifact({
          name: 'page.pdf',
          parts: [{ media: { url: 'javascript:window.broken=1', contentType: 'text/html' } }],
        });
        await respond.artifact({
          name: `${hostile.html.slice(0, 40)}${'long-name-'.repeat(30)}.txt`,
          parts: [{ text: hostile.scripts }],
        });
        await respond.artifact({
          name: 'data.json',
          parts: [{ data: { list: [1, 2, { deep: true }], text } }],
        });
        await respond.artifact({
          name: 'dot.png',
          parts: [{ media: { url: dot, contentType: 'image/png' } }],
        });
        if (text === 'film') {
          const data = new Uint8Array(1_000_000).fill(7);
          await session.saveFile({ name: 'film.mp4', contentType: 'video/mp4', data });
        }
        session.addMessages({ role: 'model', content: [{ text: 'Filed.' }] });
      });
    },
  );
}

const dot =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
