import { WaymarkError } from '../../core/error.ts';
import { type TurnRequest, turnRequest } from '../../protocol/requests.ts';
import { routes } from '../../protocol/routes.ts';
import { answerTurn } from '../answer-turn.ts';
import { readBody } from '../body.ts';
import { headerOf } from '../connection.ts';
import { jsonResponse } from '../json-response.ts';
import { openCall, type Router, type Served, type ServerContext } from '../served.ts';
import { wantsEvents } from '../sse.ts';
import { nativeFormat } from './format.ts';

/** `runTurn`: one turn, as a stream of events or as its output. */
export function mountTurns(router: Router, served: Served): void {
  router.post(routes.runTurn.path, async (c) => {
    const body = await readBody(c, turnRequest, { what: 'turn', ...served });
    const { init } = body;
    const requestId = requestIdOf(c, body);
    const input = requestId === undefined ? body.input : { ...body.input, requestId };
    const call = await openCall(served, c, 'runTurn', init);
    return answerTurn(served, c, call, {
      init,
      input,
      stream: wantsEvents(c) && nativeFormat,
      respond: (output) => jsonResponse(output),
    });
  });
}

/** The idempotency key of a turn: the header, or what the body says. They must not differ. */
function requestIdOf(c: ServerContext, { requestId, input }: TurnRequest): string | undefined {
  const header = headerOf(c, 'idempotency-key');
  const id = header ?? requestId ?? input.requestId;
  const isSame = (other: string | undefined): boolean => other === undefined || other === id;
  if (isSame(header) && isSame(requestId) && isSame(input.requestId)) return id;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The turn has several request ids. Send one, as the header Idempotency-Key or as requestId in the body.',
  );
}
