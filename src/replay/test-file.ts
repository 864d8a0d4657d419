/** Options of a generated test. */
interface TestFileOptions {
  /** The session. */
  readonly sessionId: string;
  /** The name of the fixture, next to the test. */
  readonly fixture: string;
  /** The module that exports `app`, as the test imports it. */
  readonly appModule: string;
  /** How tools are answered. @default 'recorded' */
  readonly tools?: 'recorded' | 'live';
}

/** The source of a Vitest test that replays one exported session with the recorded answers of its model. */
export function toTestFile({
  sessionId,
  fixture,
  appModule,
  tools = 'recorded',
}: TestFileOptions): string {
  const text = (value: string): string => `'${value.replace(/['\\\n]/g, '\\$&')}'`;
  return `import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { replay, scriptedModelFrom } from 'waymark/replay';
import { app } from ${text(appModule)};

const session = JSON.parse(readFileSync(new URL(${text(`./${fixture}`)}, import.meta.url), 'utf8'));

test(${text(`session ${sessionId} is answered as recorded`)}, async () => {
  const report = await replay(app, {
    sessions: session,
    with: { model: scriptedModelFrom(session) },
    tools: ${text(tools)},
  });
  expect(report.turns.length).toBeGreaterThan(0);
  expect(report.turns.flatMap((turn) => turn.divergences)).toEqual([]);
});
`;
}
