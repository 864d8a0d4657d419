import { insertReservation } from '../../sql/spend.ts';
import { postgresDialect } from '../dialect.ts';

/**
 * Makes a reservation under locks on its budgets: the statement after them sees what was written while they were waited for. The text
 * belongs to the format of its step; a change needs another name.
 */
export const reserveSpend = `
CREATE FUNCTION @reserve_spend(text, text, text, text, text, text, text, bigint, text)
RETURNS SETOF text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('@reservations ' || l.value, 0))
  FROM json_array_elements_text($9::json) AS l(value);
  RETURN QUERY ${insertReservation(postgresDialect(''))};
END $$;
`;
