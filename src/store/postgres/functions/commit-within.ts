import { declared, moreParameters, stateParameters, turnParameters } from './commit-turn.ts';

const given = Object.keys({ ...turnParameters, ...stateParameters, ...moreParameters })
  .map((name) => `_${name}`)
  .join(', ');

/**
 * Writes a snapshot within a turn, as the end of a turn is written, but leaves the session's head where it is. A head that is
 * not listed is not usual: it gives NULL, and has written nothing.
 */
export const commitWithin = `
CREATE FUNCTION @commit_run_within(${declared})
RETURNS text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
DECLARE
  held record;        -- the session
  answer text;
BEGIN
  SELECT z.row_id, z.head INTO held FROM @runs r JOIN @sessions z ON z.row_id = r.session
  WHERE r.id = _run AND r.attempt = _attempt FOR UPDATE OF z, r;
  IF NOT FOUND OR EXISTS (SELECT 1 FROM @snapshots h WHERE h.row_id = held.head AND h.idx IS NULL) THEN RETURN NULL; END IF;
  answer := @commit_run(${given});
  IF answer IS NOT NULL THEN UPDATE @sessions z SET head = held.head WHERE z.row_id = held.row_id; END IF;
  RETURN answer;
END $$;
`;
