/** Hands a text or a data URL to the browser as a file. */
export function download(
  name: string,
  content: { readonly text: string } | { readonly url: string },
): void {
  const made = 'text' in content ? URL.createObjectURL(new Blob([content.text])) : undefined;
  const link = document.createElement('a');
  link.href = made ?? ('url' in content ? content.url : '');
  link.download = name.split('/').at(-1) ?? name;
  link.click();
  if (made) setTimeout(() => URL.revokeObjectURL(made), 10_000);
}
