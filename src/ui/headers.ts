/** The headers of every answer: they keep browsers from running, framing or remembering what they should not. */

export interface HeaderOptions {
  /** Origins that may show the dashboard in a frame; none by default. */
  readonly frameAncestors?: readonly string[] | undefined
}

/** Returns the headers that every answer has. */
export function securityHeaders({ frameAncestors = [] }: HeaderOptions): Readonly<Record<string, string>> {
  const framing = frameAncestors.length > 0 ? frameAncestors.join(' ') : "'none'"
  return {
    'Content-Security-Policy': [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'self'",
      "form-action 'self'",
      `frame-ancestors ${framing}`,
    ].join('; '),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    ...(frameAncestors.length > 0 ? {} : { 'X-Frame-Options': 'DENY' }),
  }
}
