import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';

test('S252: editArtifact edits in place, streams the artifact, and refuses what does not fit', async () => {
  const app = waymark({ store: memoryStore() });
  const refused: unknown[] = [];
  const agent = app.defineCustomAgent({ name: 'editor' }, async (session) => {
    await session.run(async () => {
      session.addArtifacts({ name: 'poem', parts: [{ text: 'roses are red' }] });
      const edited = session.editArtifact('poem', [{ find: 'red', replace: 'blue' }]);
      expect(edited).toEqual({ name: 'poem', parts: [{ text: 'roses are blue' }] });
      expect(session.artifacts).toEqual([edited]);
      for (const [name, find] of [
        ['prose', 'red'],
        ['poem', 'red'],
      ] as const) {
        try {
          session.editArtifact(name, [{ find, replace: '' }]);
        } catch (error) {
          refused.push((error as { status?: unknown }).status);
        }
      }
    });
  });
  const { stream, output } = agent.streamText('go');
  const sent: unknown[] = [];
  for await (const { artifact } of stream) if (artifact) sent.push(artifact.parts[0]);
  expect(sent).toEqual([{ text: 'roses are red' }, { text: 'roses are blue' }]);
  expect(refused).toEqual(['NOT_FOUND', 'FAILED_PRECONDITION']);
  const session = await agent.getSession((await output).sessionId ?? '');
  expect(session?.state?.artifacts).toEqual([
    { name: 'poem', parts: [{ text: 'roses are blue' }] },
  ]);
  await app.close();
});
