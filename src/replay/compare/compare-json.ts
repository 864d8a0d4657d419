import { diffJson } from '../../core/json/diff.ts';
import { isJsonArray, isJsonObject, type Json } from '../../core/json/json.ts';
import { parsePointer } from '../../core/json/pointer.ts';
import type { Divergence, DivergenceKind } from './divergence.ts';

/** The places where two documents differ. One that is missing is as good as `null`. */
export function compareJson(
  kind: DivergenceKind,
  path: string,
  recorded: Json | undefined,
  replayed: Json | undefined,
): Divergence[] {
  if (recorded === replayed) return [];
  return diffJson(recorded ?? null, replayed ?? null).map((operation) => {
    const before = valueAt(recorded, operation.path);
    const after = 'value' in operation ? operation.value : undefined;
    return {
      kind,
      path: path + operation.path,
      change: changes[operation.op as keyof typeof changes] ?? 'changed',
      ...(before !== undefined && operation.op !== 'add' && { recorded: before }),
      ...(after !== undefined && { replayed: after }),
    };
  });
}

const changes = { add: 'added', remove: 'removed', replace: 'changed' } as const;

/** The value at a pointer, as far as the document has it: after earlier operations its places may have moved. */
function valueAt(document: Json | undefined, pointer: string): Json | undefined {
  let value = document;
  for (const step of parsePointer(pointer) ?? []) {
    if (isJsonArray(value)) value = value.at(Number(step));
    else if (isJsonObject(value)) value = Object.hasOwn(value, step) ? value[step] : undefined;
    else return undefined;
  }
  return value;
}
