import { WaymarkError } from '../../core/error.ts';
import type { ServerProtocol } from './handler-options.ts';
import { short } from './not-found.ts';
import type { MountedProtocol } from './server-context.ts';

/** The protocols as the router needs them; refuses other objects, and a protocol that is there twice. */
export function checkProtocols(protocols: readonly ServerProtocol[]): readonly MountedProtocol[] {
  const names = new Set<string>();
  return protocols.map((protocol) => {
    if (!isMounted(protocol)) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        '`protocols` contains something that is not a protocol. Give it what mcpProtocol(), a2aProtocol(), openAiProtocol() and aguiProtocol() of waymark/server return.',
      );
    }
    if (names.has(protocol.name)) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `The protocol ${short(protocol.name)} is given twice. Give it as an option or in \`protocols\`, once.`,
      );
    }
    names.add(protocol.name);
    return protocol;
  });
}

function isMounted(protocol: ServerProtocol): protocol is MountedProtocol {
  return typeof (protocol as Partial<MountedProtocol> | undefined)?.mount === 'function';
}
