// preact and htm, as every part uses them.

import { Fragment, createElement, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { Fragment, render };
export const html = htm.bind(createElement);
