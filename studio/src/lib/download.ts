/** Hands a text or a data URL to the browser as a file. External files open in a new tab, never in Studio's. */
export function download(
  name: string,
  content: { readonly text: string } | { readonly url: string },
): void {
  const made = 'text' in content ? URL.createObjectURL(new Blob([content.text])) : undefined;
  const link = document.createElement('a');
  link.href = made ?? ('url' in content && isFetchable(content.url) ? content.url : '');
  link.download = name.split('/').at(-1) ?? name;
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
  if (link.getAttribute('href') === '') return;
  link.click();
  if (made) setTimeout(() => URL.revokeObjectURL(made), 10_000);
}

/** A click must never run code that an agent wrote. */
function isFetchable(url: string): boolean {
  return /^(?:https?:\/\/|data:|blob:)/i.test(url);
}
