import { serverUrl, studioHeaders } from './server.ts';

/** Fetches a file that the store keeps apart from the state, and hands it to the browser. */
export async function downloadStored(
  agent: string,
  snapshotId: string,
  name: string,
): Promise<void> {
  const [by, of] = [encodeURIComponent(agent), encodeURIComponent(name)];
  const url = `${serverUrl}/agents/${by}/snapshots/${snapshotId}/artifacts/${of}`;
  const response = await fetch(url, { headers: studioHeaders() });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  download(name, { blob: await response.blob() });
}

/** Hands a text, a blob or a data URL to the browser as a file. External files open in a new tab, never in Studio's. */
export function download(
  name: string,
  content: { readonly text: string } | { readonly url: string } | { readonly blob: Blob },
): void {
  const made =
    'url' in content
      ? undefined
      : URL.createObjectURL('blob' in content ? content.blob : new Blob([content.text]));
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
