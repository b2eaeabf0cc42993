/** The package need not be installed to compile; what it is, is looked at when it is loaded (`package.ts`). */
declare module 'zookeeper' {
  const contents: unknown
  export default contents
}
