import { serve } from 'waymark/server';
import { port, userOf } from '../../given/users.ts';
import { app } from '../../given/waymark.ts';

// #region task
const server = await serve(app, {
  port,
  auth: async ({ headers }) => {
    const user = await userOf(headers.get('authorization'));
    return user && { principal: user.id };
  },
});

// #endregion

export { server };
