export const greeting = 'Hello.';
