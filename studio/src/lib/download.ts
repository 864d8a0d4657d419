/** Hands a text or a data URL to the browser as a file. What lies elsewhere opens beside the studio, never in its place. */
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

/** Whoever clicks must not run something that an agent wrote. */
function isFetchable(url: string): boolean {
  return /^(?:https?:\/\/|data:|blob:)/i.test(url);
}
