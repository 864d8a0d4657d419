import type { ReactNode } from 'react';

export const metadata = { title: 'Support desk' };

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
