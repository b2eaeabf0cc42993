/** Where the page is mounted. The server names it relative to the page that was opened first; it is one and the same for all pages. */

/** The URL of the dashboard, with a slash at its end. */
export const BASE = document.baseURI
/** The path of that URL. */
export const BASE_PATH = new URL(BASE).pathname
