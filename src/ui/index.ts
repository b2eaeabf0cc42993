/** The dashboard: `jobboard/ui`. */
export type { Access, Authenticator, Authorize, Client } from './access/access.ts'
export { basicAccess, passwordLine } from './access/basic.ts'
export { type OneTimeLink, oneTimeLink, tokenAccess } from './access/token.ts'
export { type TrustedHeaderOptions, trustedHeader } from './access/trusted-header.ts'
export { type Dashboard, dashboard } from './dashboard.ts'
export type { DashboardBoard, DashboardOptions } from './options.ts'
export type { WireFinding } from './wire/board.ts'
export type { Level } from './wire/session.ts'
