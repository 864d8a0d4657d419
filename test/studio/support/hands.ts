import type { Locator, Page } from 'playwright-core';

/** What a person does in the studio, by what is to be seen there. */
export function handsOn(page: Page) {
  const field = page.getByRole('textbox', { name: 'Message', exact: true });
  const sendButton = page.getByRole('button', { name: 'Send', exact: true });
  const timeline = page.getByRole('listbox', { name: 'Timeline' });
  const hands = {
    field,
    messages: page.getByRole('main').getByRole('region', { name: 'Messages' }),
    timeline,
    inspector: page.getByRole('tabpanel'),
    pastBar: page.getByRole('region', { name: 'Earlier snapshot' }),
    comparison: page.getByRole('region', { name: 'Comparison' }),
    /** A snapshot in the timeline, by any of its words. */
    row: (words: string | RegExp): Locator => timeline.getByRole('option', { name: words }),
    rows: timeline.getByRole('option'),
    /** Writes a message and sends it. */
    async send(text: string): Promise<void> {
      await field.fill(text);
      await sendButton.click();
    },
    /** Sends a message and waits for the end of its turn. */
    async say(text: string): Promise<void> {
      await hands.send(text);
      await hands.settled(text);
    },
    /** Waits until nothing runs, and the turn of this text is the head. */
    async settled(text: string): Promise<void> {
      await hands.row(new RegExp(`${text}.*head`)).waitFor();
      await sendButton.waitFor();
    },
    /** Presses keys outside of text fields. */
    async press(...keys: string[]): Promise<void> {
      await hands.timeline.focus();
      for (const key of keys) await page.keyboard.press(key);
    },
    tab: (name: string): Promise<void> => page.getByRole('tab', { name }).click(),
  };
  return hands;
}
