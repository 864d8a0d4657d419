import type { NextConfig } from 'next';

const config: NextConfig = {
  // Loaded by Node, not bundled: the app and its store are shared by all routes.
  serverExternalPackages: ['waymark'],
};

export default config;
