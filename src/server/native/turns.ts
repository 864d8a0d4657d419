import { turnRequest } from '../../protocol/requests.ts';
import { routes } from '../../protocol/routes.ts';
import { readBody } from '../http/body.ts';
import { jsonResponse } from '../http/json-response.ts';
import { openTurn, type Router, type ServerContext } from '../http/server-context.ts';
import { wantsEvents } from '../stream/stream-response.ts';
import { answerTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import { nativeFormat } from './format.ts';
import { checkTurnFields } from './request.ts';

/** `runTurn`: one turn, as a stream of events or as its output. */
export function mountTurns(router: Router, serverContext: ServerContext): void {
  router.post(routes.runTurn.path, async (c) => {
    const body = await readBody(c, turnRequest, {
      what: 'turn',
      check: checkTurnFields,
      ...serverContext,
    });
    const { init } = body;
    const input = underRequestId(body.input, requestIdOf(c), body.requestId);
    const call = await openTurn(serverContext, c, init);
    return answerTurn(serverContext, c, call, {
      init,
      input,
      stream: wantsEvents(c) && nativeFormat(c.req.url),
      respond: (output) => jsonResponse(output),
    });
  });
}
