import { isWaymarkError, WaymarkError } from '../core/error.ts';
import type { ClientFrame, ServerFrame } from '../protocol/frames.ts';
import type { Init } from '../protocol/turn.ts';
import type { WebSocketLike } from './options.ts';
import { createIdleTimeout, type RemoteRequest, type Transport } from './transport.ts';

export type ClientSocket = ReturnType<typeof openSocket>;

interface SocketHandlers {
  onReady(): void;
  onFrame(frame: ServerFrame): void;
  /** The socket closed; not called after `hangUp`. */
  onClose(cause?: unknown): void;
}

const initRef = 'init';

/** Opens one WebSocket of a connection, which may open another after a cut. */
export function openSocket(
  transport: Transport,
  { agent, query }: { readonly agent: string } & Pick<RemoteRequest, 'query'>,
  init: Init,
  { onReady, onFrame, onClose }: SocketHandlers,
) {
  let socket: WebSocketLike | undefined;
  let ready = false;
  let over = false;

  const idleTimeout = createIdleTimeout(transport, () => {
    socket?.close();
    close();
  });
  const send = (frame: ClientFrame): void => socket?.send(JSON.stringify(frame));
  const close = (cause?: unknown): void => {
    if (over) return;
    over = true;
    idleTimeout.end();
    onClose(cause);
  };
  const read = (frame: ServerFrame): void => {
    if (frame.type === 'accepted' && frame.ref === initRef) {
      ready = true;
      onReady();
    } else onFrame(frame);
  };
  const open = async (): Promise<void> => {
    const request = { operation: 'connect', params: { agent }, query } as const;
    const connected = await transport.connect(request);
    const { authorization } = connected;
    socket = connected.socket;
    if (over) return socket.close();
    socket.addEventListener('open', () =>
      send({ type: 'init', ref: initRef, init, ...(authorization && { authorization }) }),
    );
    socket.addEventListener('message', ({ data }) => {
      idleTimeout.heard();
      if (!over && typeof data === 'string') read(JSON.parse(data));
    });
    socket.addEventListener('close', () => close());
    // A close follows every error; the listener is there because an error event without a listener ends a Node process.
    socket.addEventListener('error', () => {});
  };
  open().catch(close);

  return {
    /** Whether the server has let this line in; before, nothing may be sent. */
    get ready(): boolean {
      return ready;
    },
    send,
    /** Closes the socket and stops listening to it. */
    hangUp(): void {
      over = true;
      idleTimeout.end();
      socket?.close();
    },
  };
}

export function cannotConnect(cause: unknown): WaymarkError {
  return isWaymarkError(cause)
    ? cause
    : new WaymarkError(
        'UNAVAILABLE',
        'The WebSocket could not be opened: check that the server runs and lets this client in.',
        { cause },
      );
}

/** Why a first line could not be opened. A WebSocket does not say, so the server is asked over HTTP. */
export async function whyNot(
  transport: Transport,
  agent: string,
  cause: unknown,
): Promise<WaymarkError> {
  if (isWaymarkError(cause)) return cause;
  try {
    await transport.json({ operation: 'getAgent', params: { agent } });
  } catch (error) {
    if (isWaymarkError(error)) return error;
  }
  return cannotConnect(cause);
}
