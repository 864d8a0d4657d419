import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The field of package.json that names the public repository. */
interface Manifest {
  readonly repository?: { readonly url: string };
}

/** The address of the public repository, from `repository` in package.json; `undefined` until that is set. */
export function publicAddress(root: string): string | undefined {
  return addressIn(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest);
}

/** package.json with the `homepage` and `bugs` that belong to its `repository`; unchanged without one. */
export function withAddress(text: string): string {
  const { repository, homepage: _, bugs: __, ...manifest } = JSON.parse(text);
  const address = addressIn({ ...manifest, repository });
  if (address === undefined) return text;
  const about = { repository, homepage: `${address}#readme`, bugs: `${address}/issues` };
  const fields = Object.entries(manifest).flatMap(([name, value]) =>
    name === 'license' ? [[name, value], ...Object.entries(about)] : [[name, value]],
  );
  return `${JSON.stringify(Object.fromEntries(fields), null, 2)}\n`;
}

/** The badges of the README; none without an address. */
export function badges(address: string | undefined): string {
  if (address === undefined) return '';
  const ci = `${address}/actions/workflows/ci.yml`;
  const npm = 'https://www.npmjs.com/package/waymark';
  return `[![CI](${ci}/badge.svg)](${ci}) [![npm](https://img.shields.io/npm/v/waymark)](${npm})\n`;
}

function addressIn({ repository }: Manifest): string | undefined {
  return repository?.url.replace(/^git\+/, '').replace(/\.git$/, '');
}
