import { failedPrecondition } from '../core/error.ts';

type Sdk = typeof import('@agentclientprotocol/sdk');

/** The package of ACP, loaded when it is first needed. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@agentclientprotocol/sdk');
  } catch (cause) {
    throw failedPrecondition(
      'ACP needs two more packages. Run "npm install @agentclientprotocol/sdk zod".',
      { cause },
    );
  }
}
