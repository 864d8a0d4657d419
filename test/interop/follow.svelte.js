/** Reads a value of Svelte's state now, and again whenever it has changed. */
export function follow(read, seen) {
  return $effect.root(() => {
    $effect(() => {
      seen.push(read());
    });
  });
}
