/** Exports of the dashboard for the command line, not for users. */
export { isLoopback } from './access/address.ts'
export { localAccess } from './access/local.ts'
export { serveDashboard } from './server.ts'
