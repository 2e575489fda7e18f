// Lets xterm.js run under a policy without inline styles.
//
// It makes `style` elements and sets `style` attributes, which the policy refuses. The same rules as a constructed style
// sheet, and the same declarations through the object model, are allowed: they need a script of this origin.

const make = Document.prototype.createElement;

/** An element that keeps what it is told as a style sheet of the document. */
function sheetElement(document) {
  const element = make.call(document, "span");
  const sheet = new CSSStyleSheet();
  element.hidden = true;
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (text) => sheet.replaceSync(text),
  });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((known) => known !== sheet);
    remove();
  };
  return element;
}

let installed = false;

export function allowStyles() {
  if (installed) return;
  installed = true;
  Document.prototype.createElement = function createElement(name, ...rest) {
    return String(name).toLowerCase() === "style" ? sheetElement(this) : make.call(this, name, ...rest);
  };
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function setAttribute(name, value) {
    if (name === "style") this.style.cssText = value;
    else set.call(this, name, value);
  };
}
