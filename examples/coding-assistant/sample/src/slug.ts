/** A title as the last part of a URL. */
export function slug(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-');
}
