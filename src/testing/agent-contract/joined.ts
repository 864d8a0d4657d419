import type { Chunk, ModelChunk } from '../../protocol/turn.ts';

/** Joins consecutive text chunks of the model: how an answer is split into chunks is unspecified. */
export function joinChunks<Item extends { readonly chunk: Chunk }>(items: readonly Item[]): Item[] {
  const joined: Item[] = [];
  for (const item of items) {
    const last = joined.at(-1);
    const text = textOf(item.chunk);
    const before = last && textOf(last.chunk);
    if (last !== undefined && text !== undefined && before !== undefined) {
      const modelChunk: ModelChunk = { role: 'model', content: [{ text: before + text }] };
      joined[joined.length - 1] = { ...item, chunk: { modelChunk } };
    } else joined.push(item);
  }
  return joined;
}

/** The text of a chunk that contains only text. */
function textOf({ modelChunk, ...rest }: Chunk): string | undefined {
  const [part, ...more] = modelChunk?.content ?? [];
  if (modelChunk?.role !== 'model' || more.length > 0 || Object.keys(rest).length > 0) {
    return undefined;
  }
  return part !== undefined && 'text' in part ? part.text : undefined;
}
