/** How request ids begin that a client makes by itself. */
export const autoPrefix = 'auto-';
