/** Where the endpoint of MCP is. */
export const mcpPath = '/mcp';
