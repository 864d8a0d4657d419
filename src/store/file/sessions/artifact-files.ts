import { type Json, parseJson } from '../../../core/json/json.ts';
import type { Artifact } from '../../../protocol/state.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { artifactsName } from '../directory/layout.ts';
import { isArtifactHash } from './state-delta.ts';

/** The artifacts of a folder of sessions, one file each, named after their content and never changed. */
export class ArtifactFiles {
  readonly folder: string;
  readonly #disk: Disk;

  constructor(disk: Disk, familyFolder: string) {
    this.#disk = disk;
    this.folder = `${familyFolder}/${artifactsName}`;
  }

  read(hash: string): Artifact {
    const name = this.#name(hash);
    const text = this.#disk.readText(name);
    if (text === undefined) throw dataLoss(name, 'it is missing');
    const artifact = parse(text, name);
    if (!isArtifactHash(artifact, hash)) throw dataLoss(name, 'its content does not fit its name');
    return artifact;
  }

  /** Writes an artifact that is not there yet, for people to read as well. */
  write(artifact: Artifact, hash: string): void {
    const name = this.#name(hash);
    if (this.#disk.stamp(name) === undefined) {
      this.#disk.replace(name, `${JSON.stringify(artifact, null, 2)}\n`);
    }
  }

  remove(hash: string): void {
    this.#disk.remove(this.#name(hash));
  }

  has(hash: string): boolean {
    return this.#disk.stamp(this.#name(hash)) !== undefined;
  }

  /** The files that hold none of these. */
  others(hashes: ReadonlySet<string>): readonly string[] {
    const wanted = new Set([...hashes].map((hash) => `${hash}.json`));
    const names = this.#disk.list(this.folder).filter((name) => !wanted.has(name));
    return names.map((name) => `${this.folder}/${name}`);
  }

  #name(hash: string): string {
    return `${this.folder}/${hash}.json`;
  }
}

function parse(text: string, name: string): Artifact {
  let value: Json;
  try {
    value = parseJson(text, name);
  } catch (cause) {
    throw dataLoss(name, 'it is not JSON', cause);
  }
  // Its hash is checked next, and vouches for the shape.
  return value as unknown as Artifact;
}
