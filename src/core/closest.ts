/** Names sorted by how near they are to the one that was asked for. Of two as near, the one that begins more like it comes first. */
export function closest(name: string, names: readonly string[]): readonly string[] {
  const asked = name.toLowerCase();
  return names
    .map((other) => {
      const word = other.toLowerCase();
      return { other, distance: editDistance(asked, word), start: commonStart(asked, word) };
    })
    .sort((a, b) => a.distance - b.distance || b.start - a.start || (a.other < b.other ? -1 : 1))
    .map(({ other }) => other);
}

function commonStart(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

/** The name that was probably meant, if one is near enough. */
export function likely(name: string, names: readonly string[]): string | undefined {
  const [nearest] = closest(name, names);
  if (nearest === undefined) return undefined;
  const distance = editDistance(name.toLowerCase(), nearest.toLowerCase());
  const most = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3));
  return distance <= most && distance < name.length ? nearest : undefined;
}

/** The Levenshtein distance of two words. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
