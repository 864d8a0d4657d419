import { expect, test } from 'vitest';
import type { Chunk } from '../../protocol/turn.ts';
import { nativeFormat } from './turns.ts';

const text = 'a "quoted" line\nand 🌍';

test('a chunk is sent as its JSON, whichever came before it', () => {
  const chunks: Chunk[] = [
    { modelChunk: { content: [{ text }] } },
    { modelChunk: { role: 'model', index: 0, content: [{ text }] } },
    { modelChunk: { role: 'model', index: 0, content: [{ text: '' }] } },
    { modelChunk: { role: 'model', index: 1, content: [{ text }] } },
    { modelChunk: { role: 'tool', index: 1, content: [{ text }] } },
    { modelChunk: { role: 'model', content: [{ text, metadata: { a: 1 } }] } },
    { modelChunk: { role: 'model', content: [{ text }, { text }] } },
    { modelChunk: { role: 'model', content: [] } },
    { modelChunk: { role: 'model', content: [{ reasoning: text }] } },
    { modelChunk: { content: [{ text }] }, agent: 'helper' } as Chunk,
    { turnStart: { sessionId: 's', turnIndex: 0 } },
    { modelChunk: { content: [{ text }] } },
  ];
  for (const chunk of chunks) {
    const frame = nativeFormat('http://localhost/').encode({ type: 'chunk', id: '1.2', chunk });
    expect(frame.endsWith('\n\n')).toBe(true);
    const [event, id, data = '', ...rest] = frame.trimEnd().split('\n');
    expect([event, id, rest]).toEqual(['event: chunk', 'id: 1.2', []]);
    expect(JSON.parse(data.slice('data: '.length))).toEqual(chunk);
  }
});
