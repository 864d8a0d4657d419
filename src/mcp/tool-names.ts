import { WaymarkError } from '../core/error.ts';
import { sha256 } from '../core/json/hash.ts';

/** How the tools of a server are named. */
export interface ToolNaming {
  readonly server: string;
  readonly prefix: string;
  readonly rename: Readonly<Record<string, string>>;
}

const longest = 64;

/**
 * The names under which a model sees the tools of a server: with a prefix, in the characters that all providers take, and
 * not too long. Two tools with one name are INVALID_ARGUMENT.
 */
export function nameTools(
  names: readonly string[],
  { server, prefix, rename }: ToolNaming,
): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  const named = new Map<string, string>();
  for (const name of names) {
    const given = Object.hasOwn(rename, name) ? rename[name] : undefined;
    const full = given ?? validName(prefix + name);
    const other = owners.get(full);
    if (other !== undefined) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `Two tools of MCP server "${server}" would be called "${full}": "${other}" and "${name}". Leave one out with \`except\`, or give it another name with \`rename\`.`,
      );
    }
    owners.set(full, name);
    named.set(name, full);
  }
  return named;
}

// Providers take letters, digits, "_" and "-", at most 64. A hash keeps long names apart.
function validName(name: string): string {
  const valid = name.replaceAll(/[^\w-]/g, '_');
  if (valid.length <= longest) return valid;
  return `${valid.slice(0, longest - 9)}_${sha256(name).slice(0, 8)}`;
}
