import type { Agent } from '../../agent/spec/agent.ts';
import type { A2aServerOptions } from '../http/handler-options.ts';
import type { Fields } from './errors.ts';

const modes = ['text/plain', 'application/json'];

/** The card of an agent, which clients of both generations can read. */
export function cardOf(
  agent: Agent,
  {
    url,
    hasPush,
    options: { version = '1', card = {} },
  }: {
    /** Where the agent answers. */
    readonly url: string;
    readonly hasPush: boolean;
    readonly options: A2aServerOptions;
  },
): Fields {
  const { name } = agent;
  const description = agent.description ?? `The agent ${name}.`;
  return {
    name,
    description,
    version,
    supportedInterfaces: [
      ['JSONRPC', '1.0'],
      ['HTTP+JSON', '1.0'],
      ['JSONRPC', '0.3'],
    ].map(([protocolBinding, protocolVersion]) => ({
      url,
      protocolBinding,
      protocolVersion,
      tenant: '',
    })),
    capabilities: {
      streaming: true,
      pushNotifications: hasPush,
      extensions: [],
      extendedAgentCard: false,
    },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [
      {
        id: name,
        name,
        description,
        tags: [],
        examples: [],
        inputModes: modes,
        outputModes: modes,
        securityRequirements: [],
      },
    ],
    signatures: [],
    // What clients of 0.3 read.
    url,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    ...card,
  };
}
