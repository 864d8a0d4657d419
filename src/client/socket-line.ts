import { WaymarkError } from '../core/error.ts';
import type { ClientFrame, ServerFrame } from '../protocol/frames.ts';
import type { Init } from '../protocol/turn.ts';
import type { WebSocketLike } from './options.ts';
import type { Transport } from './transport.ts';

/** One WebSocket of a connection; a connection whose line is cut may open another. */
export interface SocketLine {
  /** Sends a frame, once the socket is open. */
  send(frame: ClientFrame): void;
  /** Hangs up; nothing is heard of this line any more. */
  hangUp(): void;
}

export interface LineHandlers {
  onFrame(frame: ServerFrame): void;
  /** The socket closed; not called after {@link SocketLine.hangUp}. `opened` tells whether it was ever open. */
  onClose(opened: boolean, cause?: unknown): void;
}

/** Opens a WebSocket and says where to start. */
export function openLine(
  transport: Transport,
  agent: string,
  init: Init,
  { onFrame, onClose }: LineHandlers,
): SocketLine {
  const waiting: ClientFrame[] = [];
  let socket: WebSocketLike | undefined;
  let opened = false;
  let over = false;

  const close = (cause?: unknown): void => {
    if (over) return;
    over = true;
    onClose(opened, cause);
  };
  const sendNow = (to: WebSocketLike, frame: ClientFrame): void => to.send(JSON.stringify(frame));

  const open = async (): Promise<void> => {
    const connected = await transport.connect({ operation: 'connect', params: { agent } });
    const { socket: opening, authorization } = connected;
    if (over) return opening.close();
    socket = opening;
    opening.addEventListener('open', () => {
      opened = true;
      sendNow(opening, { type: 'init', init, ...(authorization && { authorization }) });
      for (const frame of waiting.splice(0)) sendNow(opening, frame);
    });
    opening.addEventListener('message', ({ data }) => {
      if (!over && typeof data === 'string') onFrame(JSON.parse(data));
    });
    opening.addEventListener('close', () => close());
    // A close follows every error; the listener is there because Node ends a process for an error nobody listens to.
    opening.addEventListener('error', () => {});
  };
  open().catch(close);

  return {
    send(frame) {
      if (opened && socket) sendNow(socket, frame);
      else waiting.push(frame);
    },
    hangUp() {
      over = true;
      socket?.close();
    },
  };
}

/** Why a line could not be opened. */
export function cannotConnect(cause: unknown): WaymarkError {
  return cause instanceof WaymarkError
    ? cause
    : new WaymarkError(
        'UNAVAILABLE',
        'The WebSocket could not be opened: check that the server runs, and that it lets this client in.',
        { cause },
      );
}
